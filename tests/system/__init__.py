"""The program on a machine: commands, users, files, containers, conf/, packaging."""
