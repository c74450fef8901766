import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'

const END_OF_MAIL = '\r\n.\r\n'

/**
 * Opens a connection to a mail server that does not exist: it accepts everything (RFC 5321) and keeps nothing. A
 * pretended mail goes through it, because composing and delivering a real one takes milliseconds that requests notice.
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
  // nodemailer calls this method of the socket.
  return Object.assign(connection, { setTimeout: () => connection }) as unknown as Socket
}
