import { once } from 'node:events'
import { connect } from 'node:net'
import { say } from '@services/common/testing/http/raw-http'
import { expect } from 'vitest'
import { openUpload } from './clients/slow-upload.ts'
import { startTestService, type TestService, test } from './service.ts'

const noWorkers = { MEDIA_WORKERS_ENABLED: 'false' }
const temporary = async (service: TestService) => (await service.listFiles()).filter((path) => path.startsWith('work/'))

test('a form that never reaches its first part ends at the limit of the largest form', async () => {
  const service = await startTestService({ ...noWorkers, MEDIA_MAX_FILE_BYTES: '100000' })
  const upload = openUpload(service.url, { token: service.token }, 'x')
  let sent = 0
  for (; !upload.isOver() && sent < 40_000_000; sent += 64_000) await upload.write(Buffer.alloc(64_000, 'x'))
  const told = await upload.answer.catch(({ code }) => code)
  // A client that keeps sending may lose the answer to the reset that follows it (RFC 9112, 9.6).
  if (typeof told !== 'string') expect(told).toMatchObject({ status: 413, body: { error: { code: 'file_too_large' } } })
  else expect(told).toMatch(/^(ECONNRESET|EPIPE)$/)
  expect(sent).toBeLessThan(40_000_000)
  upload.abort()
  await service.close()
})

test('an upload that never ends is ended, however fast it is', async () => {
  const service = await startTestService(noWorkers, { timeLimits: { uploadMs: 500 } })
  const upload = openUpload(service.url, { token: service.token })
  const drip = setInterval(() => upload.write(Buffer.alloc(1_000)), 20)
  expect(await upload.answer).toMatchObject({ status: 408, body: { error: { code: 'upload_too_slow' } } })
  clearInterval(drip)
  upload.abort()
  await expect.poll(() => temporary(service)).toEqual([])
  await service.close()
})

test('an upload that crawls is ended', async () => {
  const service = await startTestService(noWorkers, { timeLimits: { uploadWindowMs: 300 } })
  const upload = openUpload(service.url, { token: service.token })
  expect(await upload.answer).toMatchObject({ status: 408, body: { error: { code: 'upload_too_slow' } } })
  upload.abort()
  await expect.poll(() => temporary(service)).toEqual([])
  await service.close()
})

test('a JSON body that does not come is ended', async () => {
  const service = await startTestService(noWorkers, { timeLimits: { slowBodyMs: 200 } })
  const answer = await say(
    Number(new URL(service.url).port),
    `POST /media/import HTTP/1.1\r\nHost: a\r\nToken: ${service.token}\r\n` +
      'Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"source":',
  )
  expect([answer.status, answer.body]).toEqual([408, expect.stringContaining('request_too_slow')])
  await service.close()
})

test('a refusal does not wait for the body of the request', async () => {
  const service = await startTestService(noWorkers, { timeLimits: { unreadBodyMs: 200 } })
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1').on('error', () => {})
  const ended = once(socket, 'close')
  socket.write(
    'POST /media/upload HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=b\r\n' +
      'Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n',
  )
  const [answer] = await once(socket, 'data')
  expect(String(answer)).toMatch(/^HTTP\/1.1 401 /)
  await ended
  await service.close()
})
