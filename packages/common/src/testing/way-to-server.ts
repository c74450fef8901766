// An address that leads to one server or another: a proxy that can fall silent without closing, as a lost route does.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export async function startWay(serverUrl: string) {
  let target = new URL(serverUrl)
  const sockets = new Set<Socket>()
  const silences = new Set<() => void>()
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname)
    const endBoth = () => {
      near.destroy()
      far.destroy()
    }
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => {}).on('close', endBoth)
    }
    near.pipe(far).pipe(near)
    silences.add(() => {
      near.unpipe(far).pause().off('close', endBoth)
      far.unpipe(near).pause().off('close', endBoth)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = new URL(serverUrl)
  url.port = String((server.address() as AddressInfo).port)
  url.searchParams.delete('host') // a socket, which leads past the way
  return {
    url: url.href,
    /** New connections lead there; those that are open stay as they are. */
    leadTo: (next: { url: string }) => {
      target = new URL(next.url)
    },
    /** Nothing comes through open connections any more, and they stay open. New ones work. */
    silenceOpen: () => {
      for (const silence of silences) silence()
      silences.clear()
    },
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
