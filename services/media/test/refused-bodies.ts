// Large uploads that are refused before they are read, each for another reason.
import { sayAllThenListen } from '@services/common/testing/http/raw-http'
import { startTestService, type TestService } from './service.ts'

const BODY = Buffer.alloc(24_000_000)
const FORM = 'Content-Type: multipart/form-data; boundary=b\r\n'

export interface Refusal {
  status: number
  code: string
  /** Method, path and headers of a request that gets it. */
  method: string
  path: string
  headers: string
}

export const startRefusingService = (): Promise<TestService> =>
  startTestService({ MEDIA_WORKERS_ENABLED: 'false', MEDIA_PARALLEL_PER_TOKEN: '100' })

export async function everyRefusal(service: TestService): Promise<Refusal[]> {
  const reader = await service.newToken({ scopes: ['read'] })
  const full = await service.newToken({ limits: { quota_bytes: 1 } })
  const limited = await service.newToken({ limits: { upload: 1 } })
  await service.call('POST', '/media/upload', { headers: { token: limited.token } })
  const upload = { method: 'POST', path: '/media/upload' }
  const piece = 'Tus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\nContent-Type: application/offset+octet-stream\r\n'
  return [
    { status: 401, code: 'token_missing_or_invalid', ...upload, headers: `${FORM}Token: mh_wrong\r\n` },
    { status: 403, code: 'insufficient_scope', ...upload, headers: `${FORM}Token: ${reader.token}\r\n` },
    { status: 429, code: 'rate_limited', ...upload, headers: `${FORM}Token: ${limited.token}\r\n` },
    { status: 507, code: 'quota_exceeded', ...upload, headers: `${FORM}Token: ${full.token}\r\n` },
    {
      ...{ status: 404, code: 'not_found', method: 'PATCH', path: `/tus/${'a'.repeat(32)}` },
      headers: `${piece}Token: ${service.token}\r\n`,
    },
  ]
}

/** Sends all of it, and `next` on the same connection, before it listens. Returns what is not as it should be. */
export async function findLostRefusal(
  base: string,
  { status, code, method, path, headers }: Refusal,
  { version, connection, next = '' }: { version: '1.0' | '1.1'; connection: string; next?: string },
): Promise<object | undefined> {
  const head = `${method} ${path} HTTP/${version}\r\nHost: media.example\r\n${connection}${headers}`
  const whole = `${head}Content-Length: ${BODY.length}\r\n\r\n`
  const { text, failures } = await sayAllThenListen(
    Number(new URL(base).port),
    whole,
    Buffer.concat([BODY, Buffer.from(next)]),
  )
  const isRight =
    text.startsWith(`HTTP/1.1 ${status} `) &&
    text.includes(`"code":"${code}"`) &&
    (status !== 429 || /\r\nretry-after: \d+\r\n/i.test(text)) &&
    failures.length === 0
  return isRight ? undefined : { status, text: text.slice(0, 2_000), failures }
}
