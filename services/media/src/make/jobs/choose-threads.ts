export interface Load {
  cores: number
  /** Processes on this machine that transcode as well, this one among them. */
  processes: number
  /** What one process does at once. */
  concurrency: number
  /** Transcodes at work in this process, the one that asks among them. */
  running: number
  /** Jobs that no worker anywhere has begun: this machine will have its share of them in a moment. */
  waiting: number
  /** Jobs waiting or at work, on all machines. */
  depth: number
}

/**
 * Threads for one transcode: all cores when nothing else is at work here or waits, down to one each when every slot is
 * taken (contract/media.md 5.7). What runs on other machines is no reason to be slow. The other processes here are
 * taken to be as busy as this one, as far as there are jobs for them.
 */
export function chooseThreads({ cores, processes, concurrency, running, waiting, depth }: Load): number {
  const atWork = Math.min(Math.min(running * processes, depth - waiting) + waiting, concurrency * processes)
  return Math.max(1, Math.floor(cores / Math.max(1, atWork)))
}
