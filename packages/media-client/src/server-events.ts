/** A server-sent event; `data` is empty for a block without it, such as one of `retry`. */
export interface ServerEvent {
  event: string
  data: string
  id?: string
  retryMs?: number
}

/**
 * Parses a stream by the rules of HTML 9.2.6. `onBytes` also hears comments. An event without its blank line is
 * dropped.
 */
export async function* serverEvents(
  body: ReadableStream<Uint8Array>,
  onBytes: () => void = () => {},
): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder()
  const reader = body.getReader()
  let text = ''
  try {
    for (;;) {
      const { value, done } = await reader.read()
      if (done) return
      onBytes()
      text += decoder.decode(value, { stream: true })
      // A carriage return at the end may be half of a line's end.
      const whole = text.endsWith('\r') ? text.slice(0, -1) : text
      const blocks = whole.replaceAll(/\r\n?/g, '\n').split('\n\n')
      text = (blocks.pop() ?? '') + text.slice(whole.length)
      for (const block of blocks) yield parseBlock(block)
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

function parseBlock(block: string): ServerEvent {
  const parsed: ServerEvent = { event: 'message', data: '' }
  const data: string[] = []
  for (const line of block.split('\n')) {
    const [, name, value = ''] = /^([^:]+)(?:: ?(.*))?$/.exec(line) ?? []
    if (name === 'event') parsed.event = value
    if (name === 'data') data.push(value)
    if (name === 'id') parsed.id = value
    if (name === 'retry' && /^\d+$/.test(value)) parsed.retryMs = Number(value)
  }
  return { ...parsed, data: data.join('\n') }
}
