// A mail server and an SMS gateway that accept all messages and keep none. They run in a separate thread, so that their
// cost does not count as the service's.
import { createServer as createGateway } from 'node:http'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'

/** `settings` point a service at them. */
export async function startMessageSinks(): Promise<{ settings: Record<string, string>; stop(): Promise<number> }> {
  const thread = new Worker(new URL(import.meta.url))
  const [smtp, sms] = await new Promise<[number, number]>((resolve, reject) => {
    thread.once('message', resolve)
    thread.once('error', reject)
  })
  const settings = {
    AUTH_SMTP_PORT: String(smtp),
    AUTH_SMS_PROVIDER: 'http',
    AUTH_SMS_HTTP_URL: `http://127.0.0.1:${sms}/`,
    AUTH_SMS_HTTP_BODY: '{"to": "{{ .To }}", "text": "{{ .Text }}"}',
  }
  return { settings, stop: () => thread.terminate() }
}

const END_OF_MAIL = '\r\n.\r\n'

/** Accepts all mails of a connection (RFC 5321) without reading them. */
function acceptMails(socket: Socket): void {
  let isMail = false
  let last = ''
  socket.setEncoding('latin1').on('error', () => {})
  socket.on('data', (chunk: string) => {
    last = (last + chunk).slice(-END_OF_MAIL.length)
    if (isMail && last !== END_OF_MAIL) return
    isMail = !isMail && /^DATA\r\n/i.test(chunk)
    socket.write(isMail ? '354 go on\r\n' : '250 yes\r\n')
  })
  socket.write('220 sink\r\n')
}

if (!isMainThread) {
  const mailServer = createServer(acceptMails)
  const gateway = createGateway((request, response) => {
    request.resume().once('end', () => response.end('{}'))
  })
  const portOf = (server: Server) =>
    new Promise<number>((resolve) => {
      server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
    })
  parentPort?.postMessage(await Promise.all([portOf(mailServer), portOf(gateway)]))
}
