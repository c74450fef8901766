/** Deadline of every wait in a test. Only failures wait that long, so it is generous: a busy machine must not fail a test. */
export const PATIENCE_MS = 60_000
