import pg from 'pg'

const CANCEL_WITHIN_MS = 5_000

/** Members of pg's connections that its types leave out. */
interface Wire extends pg.Connection {
  connect(port: number | string, host?: string): void
  requestSsl(): void
  cancel(processID: number, secretKey: number): void
}

/**
 * Ends a statement whose caller is gone, and with it its transaction. A connection that is closed alone would not: a
 * statement that waits for a lock runs on and may commit. The connection goes too, so that a cancel request that comes too
 * late cannot meet another caller's statement. The request goes over TLS where the connection does: a server behind a proxy
 * may take nothing else, and who reads the key could end statements too.
 */
export function abandonStatement(client: pg.Client, noteLost: (err: Error) => void): void {
  const { host, port, ssl, sslNegotiation, processID, secretKey } = client as unknown as {
    host: string
    port: number
    ssl: pg.ClientConfig['ssl']
    sslNegotiation: 'postgres' | 'direct'
    processID: number
    secretKey: number
  }
  const wire = new pg.Connection({ ssl, sslNegotiation } as pg.ConnectionConfig) as Wire
  let failure = new Error('the connection for the cancel request ended early')
  let isSent = false
  const send = () => {
    isSent = true
    wire.cancel(processID, secretKey)
    wire.stream.end()
  }
  const giveUp = setTimeout(() => wire.stream.destroy(new Error('no cancel request in time')), CANCEL_WITHIN_MS)
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
    if (!isSent) noteLost(failure)
  })
  if (host.startsWith('/')) wire.connect(`${host}/.s.PGSQL.${port}`)
  else wire.connect(port, host)
  client.end().catch(() => {})
}
