// A client of event streams that reads what has arrived so far.
import { once } from 'node:events'
import { request } from 'node:http'
import type { TestService } from '../service.ts'

/** Events of the stream of a clip so far, and its end. */
export const openStream = ({ url, token }: TestService, id: string, headers: Record<string, string> = {}) =>
  openEvents(`${url}/media/${id}/events`, { token, ...headers })

/** The same at an address. */
export async function openEvents(address: string, headers: Record<string, string>) {
  const client = request(address, { headers, agent: false })
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
  /** Id of the last block that has one. */
  const lastId = () => [...stream.text.matchAll(/^id: (.*)$/gm)].at(-1)?.[1] ?? ''
  return Object.assign(stream, { events, lastId, abort: () => client.destroy() })
}

/** Progress of a clip, as a worker writes it. */
export const setProgressOf = ({ deps }: TestService, id: string, progress: number) =>
  deps.pool.query('update sources set progress = $2 where id = (select source_id from clips where id = $1)', [
    id,
    progress,
  ])
