import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'

// biome-ignore lint/suspicious/noExplicitAny: bodies are what the test says they are
export type SlowAnswer = { status: number; body: any }

const FILE_BEGINS = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.mp4"\r\n\r\n'

/** A form whose file is sent piece by piece, without a Content-Length, as far as the test likes. */
export function openUpload(url: string, headers: Record<string, string>, begin = FILE_BEGINS) {
  const client = request(`${url}/media/upload`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'multipart/form-data; boundary=b' },
    agent: false,
  })
  let isAnswered = false
  const answer = new Promise<SlowAnswer>((resolve, reject) => {
    client.on('error', (error) => (isAnswered ? undefined : reject(error)))
    client.on('response', async (response: IncomingMessage) => {
      isAnswered = true
      const chunks: Buffer[] = []
      for await (const chunk of response) chunks.push(chunk)
      resolve({ status: response.statusCode ?? 0, body: JSON.parse(Buffer.concat(chunks).toString()) })
    })
  })
  answer.catch(() => {})
  client.write(begin)
  return {
    answer,
    /** Answered, or the connection has ended without. */
    isOver: () => isAnswered || client.destroyed,
    /** Resolves when the socket takes more bytes, or has closed. */
    write: async (bytes: Uint8Array) => {
      if (isAnswered || client.destroyed || client.write(bytes)) return
      const over = new AbortController()
      const { signal } = over
      await Promise.race([
        once(client, 'drain', { signal }),
        once(client, 'close', { signal }),
        once(client, 'response', { signal }),
      ]).catch(() => {})
      over.abort()
    },
    end: () => client.end('\r\n--b--\r\n'),
    /** Disconnects without ending the request. */
    abort: () => client.destroy(),
  }
}
