// A client of resumable uploads that also sends requests that no library would.
import { once } from 'node:events'
import { stat } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Answer, TestService } from './service.ts'

export const PIECE = 'application/offset+octet-stream'

/** Calls with the token of the service, or another one. */
export function tusOf(service: TestService, token = service.token) {
  const call = (method: string, path: string, headers: Record<string, string | number> = {}, body?: Uint8Array) =>
    service.call(method, path, {
      headers: { token, 'tus-resumable': '1.0.0', ...(headers as Record<string, string>) },
      ...(body && { body: new Uint8Array(body) }),
    })
  const begin = async (bytes: number, headers: Record<string, string> = {}) => {
    const answer = await call('POST', '/tus', { 'upload-length': bytes, ...headers })
    expect(answer.status).toBe(201)
    return new URL(answer.headers.get('location') as string).pathname
  }
  const send = (path: string, offset: number, bytes: Uint8Array, headers: Record<string, string> = {}) =>
    call('PATCH', path, { 'upload-offset': offset, 'content-type': PIECE, ...headers }, bytes)
  const offset = async (path: string) => Number((await call('HEAD', path)).headers.get('upload-offset'))
  return { call, begin, send, offset }
}

export const codeOf = ({ status, body }: Answer) => [status, body?.error?.code]

/** So much of an upload is on the disk. */
export async function arrived(service: TestService, path: string, bytes: number): Promise<void> {
  const size = async () => (await stat(join(service.blobsDir, 'work/resumable', path.slice('/tus/'.length)))).size
  await expect.poll(size).toBe(bytes)
}

/** A piece that comes bit by bit. */
export function openPiece(service: TestService, path: string, headers: Record<string, string | number>, offset = 0) {
  const client = request(`${service.url}${path}`, {
    method: 'PATCH',
    headers: {
      token: service.token,
      'tus-resumable': '1.0.0',
      'content-type': PIECE,
      'upload-offset': offset,
      ...headers,
    },
    agent: false,
  })
  client.on('error', () => {})
  client.flushHeaders()
  const answer = once(client, 'response').then(([response]) => response.resume().statusCode as number)
  answer.catch(() => {})
  return { answer, write: (bytes: Uint8Array) => client.write(bytes), abort: () => client.destroy() }
}
