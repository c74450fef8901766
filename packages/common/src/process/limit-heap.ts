import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Growth of the live heap, in per cent, at which V8 collects all of it. */
const HEAP_GROWTH = 50

/**
 * Frees the garbage of loading and compiling: 123 MiB become 108 in auth, 127 become 111 in media, for 0.14 s of CPU.
 * An idle service allocates too little for V8 to collect it. From then on the heap is collected sooner than V8 would on
 * a machine with free memory. After pages of users it is 155 MiB instead of 233 to 261, for 8 to 14 % of their CPU.
 * Call it before the service takes requests: given on the command line, the flag would make V8 refuse the compile
 * cache.
 */
export function boundMemory(): void {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH}`)
  setFlagsFromString('--expose-gc')
  const collect: NodeJS.GCFunction = runInNewContext('gc')
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}
