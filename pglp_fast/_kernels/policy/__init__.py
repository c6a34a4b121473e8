"""Policy graphs as cliques and extra edges, their components and shapes."""
