// A client of event streams that reads what has arrived so far.
import { once } from 'node:events'
import { request } from 'node:http'
import type { TestService } from '../service.ts'

/** Events of a stream so far, and its end. */
export async function openStream({ url, token }: TestService, id: string, headers: Record<string, string> = {}) {
  const client = request(`${url}/media/${id}/events`, { headers: { token, ...headers }, agent: false })
  client.on('error', () => {})
  client.end()
  const [response] = await once(client, 'response')
  const stream = { status: response.statusCode as number, headers: response.headers, text: '', isOver: false }
  response.on('data', (bytes: Buffer) => {
    stream.text += bytes
  })
  response.on('error', () => {})
  response.on('close', () => {
    stream.isOver = true
  })
  const events = () =>
    [...stream.text.matchAll(/^event: (\w+)\ndata: (.*)$/gm)].map(([, name, data]) => [
      name,
      JSON.parse(data as string),
    ])
  return Object.assign(stream, { events, abort: () => client.destroy() })
}

/** Progress of a clip, as a worker writes it. */
export const setProgressOf = ({ deps }: TestService, id: string, progress: number) =>
  deps.pool.query('update sources set progress = $2 where id = (select source_id from clips where id = $1)', [
    id,
    progress,
  ])
