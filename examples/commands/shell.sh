#!/bin/bash
# Makes a number smaller step by step. Saves its state every 10 steps and resumes from it when it is started again.
set -u
rate=$1
step=0
loss=1.0
if [ -n "${SINEW_RESUME_FROM:-}" ]; then
  read -r step loss < "$SINEW_RESUME_FROM"
  echo "goes on at step $step"
fi

save() {  # writes under another name and renames: a checkpoint that exists is complete
  echo "$step $loss" > "$SINEW_CHECKPOINT_DIR/.saving"
  mv "$SINEW_CHECKPOINT_DIR/.saving" "$SINEW_CHECKPOINT_DIR/step-$step"
}
trap 'save; exit 75' TERM  # at a stop request: saves, and exits with the code for "resumable"

while [ "$step" -lt "$SINEW_PARAM_STEPS" ]; do
  step=$((step + 1))
  loss=$(awk -v loss="$loss" -v rate="$rate" 'BEGIN { print loss * (1 - rate) }')
  echo "{\"step\": $step, \"loss\": $loss}"
  [ $((step % 10)) -eq 0 ] && save
  sleep 0.05
done
exit 0
