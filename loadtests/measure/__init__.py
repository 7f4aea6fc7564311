"""Measurements on this machine: memory and time of processes, use of cores, clocks.

- `resources`: CPU time and memory of all processes of a server, read from the kernel.
- `sampler`: samples of a server under load: CPU time, memory, traffic.
- `repeatedly`: calls a function repeatedly in a thread while a context is open.
- `process_tree`: a program with all processes that it starts: started on its core, watched, ended.
- `listeners`: processes that listen at a port: found, pinned to a core, watched.
- `system_calls`: system calls of processes, counted by strace while something is done.
- `cpu_affinity`: the cores that a process runs on.
- `waiting`: waits until a condition holds.
- `disturbance`: what others take of the machine meanwhile, stolen time, clock rate.
- `machine`: hardware, cores used, limit of open files.
- `histogram`: HDR histograms of times.
"""
