import { formatBanner } from './banner.ts'

/** What a service's dev.ts sends to dev-all over IPC once it serves. */
export type ReadyMessage = { ready: true; banner: string[] }

export const isReadyMessage = (message: unknown): message is ReadyMessage =>
  typeof message === 'object' && message !== null && 'ready' in message && message.ready === true && 'banner' in message

/** Tells dev-all that this service serves; run alone, it prints the lines itself. */
export function announceReady(title: string, banner: string[]): void {
  if (process.send) process.send({ ready: true, banner } satisfies ReadyMessage)
  else process.stdout.write(formatBanner([{ title, lines: [...banner, 'Ctrl-C stops it'] }]))
}

/** Under dev-all, stops this service when dev-all is gone without a signal (kill -9). Run alone, does nothing. */
export function stopWithParent(stop: () => void): void {
  if (!process.send) return
  process.once('disconnect', stop)
  process.channel?.unref()
}
