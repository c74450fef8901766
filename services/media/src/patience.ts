/**
 * Time limits of waits for others, in ms, which tests may shorten. Not settings: operators have no basis to choose
 * them.
 */
export interface Patience {
  /** JSON bodies are small: half a minute is enough for a very bad line. */
  slowBodyMs: number
  /** Time in which a client that is still sending notices its answer; many read only after the last byte. */
  unreadBodyMs: number
  /** Window over which the speed of an upload is measured. */
  uploadWindowMs: number
  /** Longest upload at any speed: 150 MB in an hour are 42 KiB a second. */
  uploadMs: number
  /** Time without a byte taken after which an answer is cut off, which frees its file, buffer and connection. */
  stalledAnswerMs: number
  /** Interval of comments on an idle event stream: well below `stalledAnswerMs`. */
  heartbeatMs: number
  /** Longest wait for a probe or download slot, before 429 or 503. */
  slotWaitMs: number
  /** Limit for a receiver's answer: Standard Webhooks advises 15 to 30 s, contract/media.md 2.14 requires 5. */
  webhookAnswerMs: number
  /** Limit of one transcode: below the expiry of its job, so that waiting requests get the reason. */
  transcodeMs: number
  /** Delay of the first round of housekeeping: short, because a crash may have left work. */
  firstHousekeepingMs: number
  housekeepingEveryMs: number
  /** S3 answers in milliseconds; a longer wait holds a connection, and perhaps locked rows. */
  storageAnswerMs: number
  /** Longer than `storageAnswerMs`: S3 may be starting, too. */
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
