/** Time limits of waits, in ms, which tests may shorten. Not settings: operators have no basis to choose them. */
export const TIME_LIMITS = {
  /** JSON bodies are small: half a minute is enough for a very bad line. */
  slowBodyMs: 30_000,
  /** Time in which a client that is still sending notices its answer; many read only after the last byte. */
  unreadBodyMs: 30_000,
  /** Window over which the speed of an upload is measured. */
  uploadWindowMs: 30_000,
  /** Longest upload at any speed: 150 MB in an hour are 42 KiB a second. */
  uploadMs: 3_600_000,
  /** Time without a byte taken after which an answer is cut off, which frees its file, buffer and connection. */
  stalledAnswerMs: 30_000,
  /** Longest archive, as of event streams: 2 GB in an hour are 556 kB a second. */
  archiveMs: 3_600_000,
  /** Interval of comments on an idle event stream: well below `stalledAnswerMs`. */
  heartbeatMs: 15_000,
  /** Longest wait for a probe or download slot, before 429 or 503. */
  slotWaitMs: 15_000,
  /** Longest wait for a still that another process is making, before 202. */
  otherStillMs: 10_000,
  /** Limit for a receiver's answer: Standard Webhooks advises 15 to 30 s, contract/media.md 2.14 requires 5. */
  webhookAnswerMs: 5_000,
  /** Limit for the answer of the operator's scanner. */
  scanAnswerMs: 10_000,
  /** Limit of one transcode: below the expiry of its job, so that waiting requests get the reason. */
  transcodeMs: 1_000_000,
  /** Delay of the first round of housekeeping: short, because a crash may have left work. */
  firstHousekeepingMs: 10_000,
  housekeepingEveryMs: 300_000,
  /** S3 answers in milliseconds; a longer wait holds a request, and uploads of bytes that are being deleted. */
  storageAnswerMs: 10_000,
  /** Longer than `storageAnswerMs`: S3 may be starting, too. */
  storageStartMs: 20_000,
}

export type TimeLimits = typeof TIME_LIMITS
