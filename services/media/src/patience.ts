/**
 * How long the service waits for others, in ms: values a test holds in its hand. They are not settings, because who runs
 * the service has nothing to go by; what a proxy in front allows is shorter anyway.
 */
export interface Patience {
  /** JSON bodies are small: half a minute is for a line that barely works, not for one that holds us up. */
  slowBodyMs: number
  /** Time in which a client that is still sending notices its answer; many read it only when all is sent. */
  unreadBodyMs: number
  /** An upload is measured over this long, and given up when it was too slow. */
  uploadWindowMs: number
  /** No upload takes longer, whatever its speed: 150 MB in an hour are 42 KiB a second. */
  uploadMs: number
  /** An answer of which nothing is taken for this long holds a file, a buffer and a connection for nobody. */
  stalledAnswerMs: number
  /** An event stream on which nothing happens says so this often: well before the end of a stalled answer. */
  heartbeatMs: number
  /** What waits longer for a probe or a download is told to come back. */
  slotWaitMs: number
  /** A receiver of webhooks answers within it: Standard Webhooks advises 15 to 30 s, contract/media.md 2.14 has five. */
  webhookAnswerMs: number
  /** All that is done to make one clip: below the expiry of its job, so that who waits for it is told why. */
  transcodeMs: number
  /** From the start of a worker to its first round of housekeeping: what a crash left does not wait for long. */
  firstHousekeepingMs: number
  housekeepingEveryMs: number
  /** An S3 answers in milliseconds; who waits longer holds a connection, and perhaps rows of the database, for nothing. */
  storageAnswerMs: number
  /** At a start S3 may be starting too. */
  storageStartMs: number
}

export const PATIENCE: Patience = {
  slowBodyMs: 30_000,
  unreadBodyMs: 30_000,
  uploadWindowMs: 30_000,
  uploadMs: 3_600_000,
  stalledAnswerMs: 30_000,
  heartbeatMs: 15_000,
  slotWaitMs: 15_000,
  webhookAnswerMs: 5_000,
  transcodeMs: 1_000_000,
  firstHousekeepingMs: 10_000,
  housekeepingEveryMs: 300_000,
  storageAnswerMs: 10_000,
  storageStartMs: 20_000,
}
