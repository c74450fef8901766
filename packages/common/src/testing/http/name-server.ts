import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'

/** Answers of a name server: addresses, no such name, or a failure. Unlisted names get no answer. */
export type Zone = Record<string, { A?: string[]; AAAA?: string[] | 'silent' } | 'NXDOMAIN' | 'SERVFAIL'>

const RCODES = { NXDOMAIN: 3, SERVFAIL: 2 }
const TYPES: Record<number, 'A' | 'AAAA'> = { 1: 'A', 28: 'AAAA' }

/** A DNS server on loopback (RFC 1035 4.1). `queries` are the names it was queried for. */
export async function startNameServer(zone: Zone): Promise<{ address: string; queries: string[] }> {
  const queries: string[] = []
  const socket = createSocket('udp4')
  socket.on('message', (query, { port, address }) => {
    const { name, type, end } = readQuestion(query)
    queries.push(name)
    const known = zone[name]
    if (!known) return
    const records = typeof known === 'string' ? [] : known[TYPES[type] ?? 'A']
    if (records === 'silent') return
    const head = Buffer.from(query.subarray(0, 12))
    head.writeUInt16BE(0x8180 | (typeof known === 'string' ? RCODES[known] : 0), 2)
    head.writeUInt16BE(records?.length ?? 0, 6)
    head.writeUInt32BE(0, 8)
    const answers = (records ?? []).map((record) => recordOf(type, record))
    socket.send(Buffer.concat([head, query.subarray(12, end), ...answers]), port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  onTestFinished(() => void socket.close())
  return { address: `127.0.0.1:${socket.address().port}`, queries }
}

function readQuestion(query: Buffer) {
  const labels: string[] = []
  let at = 12
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 }
}

/** About the name of the question, and for no time. */
function recordOf(type: number, address: string): Buffer {
  const data =
    type === 1
      ? Buffer.from(address.split('.').map(Number))
      : Buffer.from(expandIpv6(address).flatMap((group) => [group >> 8, group & 0xff]))
  const head = Buffer.alloc(12)
  head.writeUInt16BE(0xc00c, 0)
  head.writeUInt16BE(type, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(data.length, 10)
  return Buffer.concat([head, data])
}

function expandIpv6(address: string): number[] {
  const [start = [], end = []] = address.split('::').map((half) => half.split(':').filter(Boolean))
  const groups = [...start, ...Array(8 - start.length - end.length).fill('0'), ...end]
  return groups.map((group) => Number.parseInt(group, 16))
}
