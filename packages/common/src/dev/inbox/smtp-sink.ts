import { once } from 'node:events'
import type { Socket } from 'node:net'
import { SMTPServer, type SMTPServerAddress, type SMTPServerDataStream, type SMTPServerSession } from 'smtp-server'

/** Steps at which a server may refuse (RFC 5321): greeting, MAIL FROM, RCPT TO, after DATA. */
export type SmtpStep = 'connection' | 'sender' | 'recipient' | 'message'

/**
 * Behaviour towards clients. `answer`: the reply code at that step (4xx: temporary, 5xx: permanent). `hang`: the
 * connection opens and stays silent, or falls silent at recipients whose address ends with this domain. `drop`: all
 * connections break at that step. `refuse`: no server listens on the port.
 */
export type SmtpBehaviour =
  | { kind: 'accept' }
  | { kind: 'answer'; code: number; at: SmtpStep }
  | { kind: 'hang'; domain?: string }
  | { kind: 'drop'; at: SmtpStep }
  | { kind: 'refuse' }

export type Envelope = { from: string; to: string[] }

export type SmtpSink = {
  host: string
  port: number
  /** Changes the behaviour and closes open connections, so that clients that keep them see the change. */
  behave(behaviour: SmtpBehaviour): Promise<void>
  /** Connections that wait for the answer to a recipient of the domain that hangs. */
  hanging(): number
  close(): Promise<void>
}

export const LARGEST_MESSAGE_BYTES = 10 * 1024 * 1024

/** Starts a mail server that passes each mail to `receive` and then answers 250. */
export async function startSmtpSink(
  listenOn: { host: string; port: number },
  receive: (raw: Buffer, envelope: Envelope) => Promise<void>,
): Promise<SmtpSink> {
  const { host } = listenOn
  let behaviour: SmtpBehaviour = { kind: 'accept' }

  const hanging = new Set<string>()

  async function passRecipient({ address }: SMTPServerAddress, { id }: SMTPServerSession): Promise<void> {
    const domain = behaviour.kind === 'hang' ? behaviour.domain : undefined
    if (domain === undefined || !address.endsWith(domain)) return pass('recipient')
    hanging.add(id)
    await new Promise(() => {})
  }

  /** Throws the refusal of this step; never resolves while hanging or after a break. */
  async function pass(step: SmtpStep): Promise<void> {
    const isBroken = behaviour.kind === 'drop' && behaviour.at === step
    if (isBroken) listener?.dropConnections()
    const isSilent = behaviour.kind === 'hang' && behaviour.domain === undefined
    if (isBroken || isSilent) await new Promise(() => {})
    if (behaviour.kind === 'answer' && behaviour.at === step) throw smtpRefusal(behaviour.code, 'as configured')
  }

  async function receiveData(stream: SMTPServerDataStream, session: SMTPServerSession): Promise<void> {
    const raw = await readAtMost(stream, LARGEST_MESSAGE_BYTES)
    if (raw === undefined) throw smtpRefusal(552, `a message may have ${LARGEST_MESSAGE_BYTES} bytes`)
    await pass('message')
    const { mailFrom, rcptTo } = session.envelope
    await receive(raw, { from: mailFrom ? mailFrom.address : '', to: rcptTo.map(({ address }) => address) })
  }

  const createServer = () =>
    new SMTPServer({
      name: 'inbox.localhost',
      size: LARGEST_MESSAGE_BYTES,
      authOptional: true,
      allowInsecureAuth: true,
      disabledCommands: ['STARTTLS'],
      disableReverseLookup: true,
      logger: false,
      onAuth: (auth, _session, done) => done(null, { user: auth.username ?? 'anyone' }),
      onConnect: (_session, done) => void pass('connection').then(() => done(), done),
      onMailFrom: (_address, _session, done) => void pass('sender').then(() => done(), done),
      onRcptTo: (address, session, done) => void passRecipient(address, session).then(() => done(), done),
      onClose: ({ id }) => void hanging.delete(id),
      onData: (stream, session, done) => void receiveData(stream, session).then(() => done(), done),
    })

  let listener: Listener | undefined = await listen(createServer(), host, listenOn.port)
  const { port } = listener

  return {
    host,
    port,
    hanging: () => hanging.size,
    async behave(next) {
      behaviour = next
      listener?.dropConnections()
      if (next.kind === 'refuse') {
        await listener?.close()
        listener = undefined
        return
      }
      listener ??= await listen(createServer(), host, port)
    },
    async close() {
      await listener?.close()
      listener = undefined
    },
  }
}

type Listener = { port: number; dropConnections(): void; close(): Promise<void> }

/** Listens; unlike SMTPServer's own close, closing disconnects the clients. */
async function listen(server: SMTPServer, host: string, wantedPort: number): Promise<Listener> {
  const sockets = new Set<Socket>()
  server.server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.listen(wantedPort, host)
  await once(server.server, 'listening')
  server.on('error', () => {}) // a client may disconnect at any time
  const address = server.server.address()
  if (address === null || typeof address === 'string') throw new Error('The SMTP sink has no port.')

  const dropConnections = () => {
    for (const socket of sockets) socket.destroy()
  }
  const close = async () => {
    const closed = once(server.server, 'close')
    server.close()
    dropConnections()
    await closed
  }
  return { port: address.port, dropConnections, close }
}

/** Reads to the end, after which SMTP answers, and keeps nothing past the limit. */
async function readAtMost(stream: AsyncIterable<Buffer>, limitBytes: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of stream) {
    bytes += chunk.length
    if (bytes <= limitBytes) chunks.push(chunk)
    else chunks.length = 0
  }
  return bytes <= limitBytes ? Buffer.concat(chunks) : undefined
}

function smtpRefusal(responseCode: number, reason: string): Error & { responseCode: number } {
  return Object.assign(new Error(`Refused, ${reason}`), { responseCode })
}
