export type BannerSection = { title: string; lines: string[] }

/** What somebody needs who just started something: a few short lines that stand out from the log around them. */
export function formatBanner(sections: BannerSection[]): string {
  const rule = '─'.repeat(72)
  const paragraphs = sections.map(({ title, lines }) => [title, ...lines.map((line) => `  ${line}`)].join('\n'))
  return `\n${rule}\n${paragraphs.join('\n\n')}\n${rule}\n`
}
