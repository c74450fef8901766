import { expect, test } from 'vitest'
import { type ServerEvent, serverEvents } from './server-events.ts'

async function parse(...chunks: (string | Uint8Array)[]): Promise<ServerEvent[]> {
  const bytes = chunks.map((chunk) => (typeof chunk === 'string' ? new TextEncoder().encode(chunk) : chunk))
  const events: ServerEvent[] = []
  for await (const event of serverEvents(ReadableStream.from(bytes) as ReadableStream<Uint8Array>)) events.push(event)
  return events
}

test('events have a name, data, an id and a delay; comments have nothing', async () => {
  const text = 'retry: 2000\n\n: still here\n\nid: ready\nevent: ready\ndata: {"state":"ready"}\n\ndata: a\ndata:b\n\n'
  expect(await parse(text)).toEqual([
    { event: 'message', data: '', retryMs: 2000 },
    { event: 'message', data: '' },
    { event: 'ready', data: '{"state":"ready"}', id: 'ready' },
    { event: 'message', data: 'a\nb' },
  ])
})

test('an event may come in any pieces, with any ends of lines, and needs its blank line', async () => {
  const bytes = new TextEncoder().encode('event: a\r\ndata: Grüße\r\n\r\nevent: b\rdata: 2\r\revent: c\ndata: cut off')
  const single = Array.from(bytes, (_, at) => bytes.slice(at, at + 1))
  const expected = [
    { event: 'a', data: 'Grüße' },
    { event: 'b', data: '2' },
  ]
  expect(await parse(bytes)).toEqual(expected)
  expect(await parse(...single)).toEqual(expected)
})
