import { once } from 'node:events'
import type { Socket } from 'node:net'
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from 'smtp-server'

/** RFC 5321 moments at which a server may refuse: at the greeting, at MAIL FROM, at RCPT TO, after DATA. */
export type SmtpStep = 'connection' | 'sender' | 'recipient' | 'message'

/**
 * What the server does to its clients. `answer`: that reply code at that step (4xx: try later, 5xx: give up).
 * `hang`: the connection opens and not a word comes. `drop`: it breaks at that step, with all others. `refuse`: nothing listens on the port.
 */
export type SmtpBehaviour =
  | { kind: 'accept' }
  | { kind: 'answer'; code: number; at: SmtpStep }
  | { kind: 'hang' }
  | { kind: 'drop'; at: SmtpStep }
  | { kind: 'refuse' }

export type Envelope = { from: string; to: string[] }

export type SmtpSink = {
  host: string
  port: number
  /** Ends the connections that are open, so that a client which keeps them sees the change too. */
  behave(behaviour: SmtpBehaviour): Promise<void>
  close(): Promise<void>
}

/** Larger than any mail of ours by far; a client that sends more gets 552. */
export const LARGEST_MESSAGE_BYTES = 10 * 1024 * 1024

/** A mail server that keeps nothing and delivers nowhere: each mail goes to `receive`, then its sender is told 250. */
export async function startSmtpSink(
  listenOn: { host: string; port: number },
  receive: (raw: Buffer, envelope: Envelope) => Promise<void>,
): Promise<SmtpSink> {
  const { host } = listenOn
  let behaviour: SmtpBehaviour = { kind: 'accept' }

  /** Throws the refusal that is due at this step; never returns while hanging or where the connection has broken. */
  async function pass(step: SmtpStep): Promise<void> {
    const isBroken = behaviour.kind === 'drop' && behaviour.at === step
    if (isBroken) listener?.dropConnections()
    if (isBroken || behaviour.kind === 'hang') await new Promise(() => {})
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
      onRcptTo: (_address, _session, done) => void pass('recipient').then(() => done(), done),
      onData: (stream, session, done) => void receiveData(stream, session).then(() => done(), done),
    })

  let listener: Listener | undefined = await listen(createServer(), host, listenOn.port)
  const { port } = listener

  return {
    host,
    port,
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

/** SMTPServer's own close waits for its clients; here they are cut off. */
async function listen(server: SMTPServer, host: string, wantedPort: number): Promise<Listener> {
  const sockets = new Set<Socket>()
  server.server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.listen(wantedPort, host)
  await once(server.server, 'listening')
  server.on('error', () => {}) // a client that breaks off is its own affair
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

/** Reads to the end in any case, because SMTP answers only then, but keeps nothing past the limit. */
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
