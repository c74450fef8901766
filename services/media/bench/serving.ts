import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { findFreePort } from '@services/common/dev/dev-ports'

const run = promisify(execFile)

const NGINX = 'nginx'

const SECONDS = 3
const CONNECTIONS = 20

/** Programs that these rows need and that are not installed. */
export async function missingTools(): Promise<string[]> {
  const isMissing = (name: string, version: string) =>
    run(name, [version]).then(
      () => false,
      ({ code }) => code === 'ENOENT', // wrk prints its version and exits with 1.
    )
  const missing = await Promise.all([isMissing(NGINX, '-v'), isMissing('wrk', '-v')])
  return ['nginx', 'wrk'].filter((_name, index) => missing[index])
}

/** Starts nginx as distributions configure it, with sendfile and an access log, and with one process like ours. */
export async function startNginx(root: string, directory: string) {
  const port = await findFreePort()
  const home = join(directory, 'nginx')
  await mkdir(home, { recursive: true })
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  await writeFile(
    join(home, 'nginx.conf'),
    `daemon off; worker_processes 1; pid ${home}/pid; error_log ${home}/error.log;
${process.getuid?.() === 0 ? 'user root;' : ''}
events { worker_connections 1024; }
http {
  sendfile on; tcp_nopush on; keepalive_requests 1000000; access_log ${home}/access.log;
  ${temporary.map((name) => `${name}_temp_path ${home}/${name};`).join(' ')}
  server { listen 127.0.0.1:${port}; root ${root}; }
}
`,
  )
  const child = spawn(NGINX, ['-p', home, '-e', `${home}/error.log`, '-c', `${home}/nginx.conf`], {
    stdio: 'inherit',
  })
  await listening(port)
  return {
    base: `http://127.0.0.1:${port}`,
    stop: async () => {
      child.kill('SIGTERM')
      await once(child, 'exit')
    },
  }
}

/** Measures requests per second with 20 connections; throws unless every answer was successful. */
export async function requestRate(url: string, range?: string): Promise<number> {
  const headers = range ? ['-H', `Range: ${range}`] : []
  const { stdout } = await run('wrk', ['-t1', `-c${CONNECTIONS}`, `-d${SECONDS}s`, ...headers, url])
  if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(stdout)
  return Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1])
}

async function listening(port: number): Promise<void> {
  for (let attempt = 0; attempt < 50; attempt++) {
    const socket = createConnection(port, '127.0.0.1')
    const isOpen = await Promise.race([
      once(socket, 'connect').then(() => true),
      once(socket, 'error').then(() => false),
    ]).catch(() => false)
    socket.destroy()
    if (isOpen) return
    await sleep(100)
  }
  throw new Error('nginx does not listen')
}
