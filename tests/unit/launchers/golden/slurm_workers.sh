#!/bin/sh
# A process of servers for each worker. Start it with sbatch.
#SBATCH --job-name=servers
#SBATCH --output=servers-%j.log
#SBATCH --ntasks=4
#SBATCH --cpus-per-task=2
exec srun --ntasks=4 --cpus-per-task=2 /opt/caftan/bin/caftan run '/data/my runs/servers.toml' run.placement=hosts run.launcher=slurm cluster.secret_file=s 'run.name="it'\''s"' x=
