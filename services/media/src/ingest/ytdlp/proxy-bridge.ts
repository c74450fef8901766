// A separate program inside the sandbox, which has no network. It listens on the sandbox's loopback, forwards to the
// socket of our proxy, and runs yt-dlp, which has no other way out. Arguments: the socket's path, the port, the program
// and its arguments.
import { spawn } from 'node:child_process'
import { connect, createServer } from 'node:net'
import { constants } from 'node:os'

const [socketPath = '', port = '', program = '', ...args] = process.argv.slice(2)

const server = createServer((client) => {
  const proxy = connect(socketPath)
  client.on('error', () => proxy.destroy()).on('close', () => proxy.destroy())
  proxy.on('error', () => client.destroy()).on('close', () => client.destroy())
  client.pipe(proxy).pipe(client)
})
server.listen(Number(port), '127.0.0.1', () => {
  const child = spawn(program, args, { stdio: ['ignore', 'inherit', 'inherit'] })
  child.on('error', () => process.exit(127))
  child.on('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal ?? 'SIGKILL']))
})
