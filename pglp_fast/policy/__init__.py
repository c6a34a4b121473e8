"""What is protected: policy graphs, domains, sensitivity hulls, exposure and repair."""
