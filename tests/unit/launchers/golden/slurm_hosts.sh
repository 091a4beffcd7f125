#!/bin/sh
# A process of servers for each host of the file, on a node of its own. Start it with sbatch.
#SBATCH --job-name=servers
#SBATCH --output=servers-%j.log
#SBATCH --ntasks=2
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=4
#SBATCH --time=92
exec srun --ntasks=2 --cpus-per-task=4 /opt/caftan/bin/caftan run '/data/my runs/servers.toml' run.placement=hosts run.launcher=slurm cluster.secret_file=s 'run.name="it'\''s"' x=
