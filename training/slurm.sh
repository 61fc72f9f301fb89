#!/usr/bin/env bash
# One worker a node, all GPUs of each node: sbatch training/slurm.sh wmt14-base --to /shared/runs/wmt14-base
#SBATCH --job-name=keras-transformer
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --requeue
set -euo pipefail
export KERAS_TRANSFORMER_ARGUMENTS="$*"
export KERAS_TRANSFORMER_NODES="$(scontrol show hostnames "$SLURM_JOB_NODELIST" | paste -sd, -)"

srun bash -c '
  export TF_CONFIG="$(python3 -c "
import json, os
workers = [node + \":12345\" for node in os.environ[\"KERAS_TRANSFORMER_NODES\"].split(\",\")]
task = {\"type\": \"worker\", \"index\": int(os.environ[\"SLURM_PROCID\"])}
print(json.dumps({\"cluster\": {\"worker\": workers}, \"task\": task}))
")"
  exec keras-transformer train $KERAS_TRANSFORMER_ARGUMENTS --set training.distribution=multi_worker
'
