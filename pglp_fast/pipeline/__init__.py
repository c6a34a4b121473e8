"""Tables released by a plan: in memory, in files, in batches, on many machines.

As the data flows:

- what decides a release: ``plan`` (and ``plan_*``: its checks, facts, budgets, policies, schedule,
  file), ``maps``;
- rows come in: ``source`` (files), ``frames`` (tables in memory), ``batches`` (as they come);
  ``rows`` says what each row says, ``persons`` whose it is, ``steps`` which step of a trace;
- rows are released: one by one (``alone``), or as steps of traces (``moving``); of files by tasks
  (``moving_files``, ``tasks``, ``task_context``, ``executors``, ``spill``, ``warm``), of batches
  with a store of idle persons (``person_store``);
- what is spent and proved: ``booking`` (the ledger file), ``certificate``, ``fingerprint`` (was the
  model fitted on these very rows?);
- rows go out: ``released`` (what is added, and counts), ``sink``, ``text_rows``; ``files`` and
  ``job`` see to it that outputs appear whole or not at all; ``table_facts`` reads back what a table
  says of itself;
- beside all that: ``convert`` and ``geo_files`` (formats), ``simulation`` (made-up people),
  ``paths``.
"""
