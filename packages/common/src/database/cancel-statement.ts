// Cancel requests of PostgreSQL's protocol. Only this file uses private members of pg; cancel-statement.test.ts names
// them. Called by connection.ts, when the time of request-deadline.ts is up. Behaviour is tested in pool.test.ts.
import pg from 'pg'

const CANCEL_WITHIN_MS = 5_000

/** Methods that pg's types leave out. */
interface Wire extends pg.Connection {
  connect(port: number | string, host?: string): void
  requestSsl(): void
  cancel(processID: number, secretKey: number): void
}

/**
 * Cancels the running statement and its transaction, and then closes the connection. Closing is not enough: a statement
 * that waits for a lock runs on and may commit. Neither is cancelling: a late cancel could hit another caller's
 * statement. Closing first would make a pooler forget the key. Uses TLS where the client does: a proxy may accept
 * nothing else, and the key must stay secret.
 */
export function cancelStatement(client: pg.Client, onLost: (err: Error) => void): void {
  const { host, port, ssl, sslNegotiation, processID, secretKey } = client as unknown as {
    host: string
    port: number
    ssl: pg.ClientConfig['ssl']
    sslNegotiation: 'postgres' | 'direct'
    processID: number
    secretKey: number
  }
  const wire = new pg.Connection({ ssl, sslNegotiation } as pg.ConnectionConfig) as Wire
  let failure = new Error('connection closed before the cancel request was sent')
  let isSent = false
  const send = () => {
    isSent = true
    // The server closes once it has sent the signal.
    wire.cancel(processID, secretKey)
  }
  const giveUp = setTimeout(() => wire.stream.destroy(new Error('cancel request timed out')), CANCEL_WITHIN_MS)
  wire.on('connect', () => {
    if (!ssl) send()
    else if (sslNegotiation !== 'direct') wire.requestSsl()
  })
  wire.on('sslconnect', send)
  wire.on('error', (error: Error) => {
    failure = error
  })
  wire.once('end', () => {
    clearTimeout(giveUp)
    if (!isSent) onLost(failure)
    client.end().catch(() => {})
  })
  if (host.startsWith('/')) wire.connect(`${host}/.s.PGSQL.${port}`)
  else wire.connect(port, host)
}
