export interface Load {
  cores: number
  /** Transcoding processes on this machine, including this one. */
  processes: number
  concurrency: number
  /** Transcodes in this process, including the one that asks. */
  running: number
  /** Jobs that no worker has begun; this machine will soon take some of them. */
  waiting: number
  /** Jobs that workers anywhere have begun. */
  claimed: number
}

/**
 * Threads for one transcode: all cores when nothing else runs here or waits, down to one when every slot is taken
 * (contract/media.md 5.7). Jobs on other machines do not count. The other processes here are assumed to be as busy as
 * this one, if there are jobs for them.
 */
export function chooseThreads({ cores, processes, concurrency, running, waiting, claimed }: Load): number {
  const atWork = Math.min(Math.min(running * processes, claimed) + waiting, concurrency * processes)
  return Math.max(1, Math.floor(cores / Math.max(1, atWork)))
}
