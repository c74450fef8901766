/** Deadline of every wait in a test: long, because only failures reach it and a busy machine must not. */
export const PATIENCE_MS = 60_000
