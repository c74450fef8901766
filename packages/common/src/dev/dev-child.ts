export type ReadyMessage = { banner: string[] }

export type BannerSection = { title: string; lines: string[] }

export function formatBanner(sections: BannerSection[]): string {
  const rule = '─'.repeat(72)
  const paragraphs = sections.map(({ title, lines }) => [title, ...lines.map((line) => `  ${line}`)].join('\n'))
  return `\n${rule}\n${paragraphs.join('\n\n')}\n${rule}\n`
}

/** Reports to dev-all that this service serves; without dev-all it prints the lines itself. */
export function announceReady(title: string, banner: string[]): void {
  if (process.send) process.send({ banner } satisfies ReadyMessage)
  else process.stdout.write(formatBanner([{ title, lines: [...banner, 'Ctrl-C stops it'] }]))
}

/** Stops this service when dev-all dies without a signal (kill -9). Without dev-all it does nothing. */
export function stopWithParent(stop: () => void): void {
  if (!process.send) return
  process.once('disconnect', stop)
  process.channel?.unref()
}
