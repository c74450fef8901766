import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Frees the garbage of loading and compiling: 123 MiB become 108 in auth, 127 become 111 in media, for 0.14 s of CPU. An idle
 * service allocates too little for V8 to collect it. Call it before the service takes requests.
 */
export function releaseStartMemory(): void {
  setFlagsFromString('--expose-gc')
  const collect: NodeJS.GCFunction = runInNewContext('gc')
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}
