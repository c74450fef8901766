import { spawnSync } from 'node:child_process'
import type { Sandbox } from '../src/ffmpeg/sandbox.ts'

/**
 * What this machine has and allows, tried out with words of our own: a test that asked the code under test would skip
 * itself when the code finds nothing any more.
 */
const works = (command: string, ...args: string[]): boolean => spawnSync(command, [...args, 'true']).status === 0

export const machine = {
  nice: works('nice', '-n', '10'),
  prlimit: works('prlimit', '--core=0'),
  setpriv: works('setpriv', '--pdeathsig', 'KILL', '--no-new-privs'),
}

const SANDBOXES_OF_MACHINE: Record<Sandbox['kind'], boolean> = {
  bwrap: works('bwrap', '--unshare-all', '--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc'),
  namespaces: works('unshare', '-rn', '--ipc', '--pid', '--fork', '--mount-proc'),
  'user namespace': works('unshare', '-rn', '--ipc'),
}

export const allowsSandbox = (kind: Sandbox['kind']): boolean => SANDBOXES_OF_MACHINE[kind]
