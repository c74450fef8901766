import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'

const END_OF_MAIL = '\r\n.\r\n'

/**
 * A connection to a mail server that is not there: it agrees to all (RFC 5321) and keeps nothing. A mail that is only pretended
 * goes into it, because composing and handing over a real one takes milliseconds, in which requests wait.
 */
export function openPretendedConnection(): Socket {
  let isMail = false
  let last = ''
  const answer = (chunk: string): string => {
    last = (last + chunk).slice(-END_OF_MAIL.length)
    if (isMail) {
      if (last !== END_OF_MAIL) return ''
      isMail = false
      return '250 taken\r\n'
    }
    isMail = /^DATA\r\n/i.test(chunk)
    return isMail ? '354 go on\r\n' : '250 yes\r\n'
  }
  const connection = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      const reply = answer(chunk.toString('latin1'))
      if (reply) setImmediate(() => connection.push(reply))
      done()
    },
    final(done) {
      connection.push(null)
      done()
    },
  })
  connection.push('220 nobody\r\n')
  // What a socket has and nodemailer asks of it.
  return Object.assign(connection, { setTimeout: () => connection }) as unknown as Socket
}
