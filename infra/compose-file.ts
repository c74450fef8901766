import { readFileSync } from 'node:fs'
import { parse } from 'yaml'

export interface ComposeService {
  image: string
  build?: { context: string; dockerfile: string }
  command?: string[]
  environment?: Record<string, string | number>
  ports?: string[]
  depends_on?: Record<string, { condition: string }>
  tmpfs?: string[]
  volumes?: string[]
  configs?: { source: string; target: string }[]
  healthcheck?: { test?: string[]; disable?: boolean }
  read_only?: boolean
  cap_drop?: string[]
  security_opt?: string[]
}

export interface ComposeFile {
  services: Record<string, ComposeService>
  configs: Record<string, { content: string }>
  volumes: Record<string, unknown>
}

/** Reads compose.yaml with anchors and `<<`, as Compose does. */
export const readCompose = (): ComposeFile =>
  parse(readFileSync(new URL('./compose.yaml', import.meta.url), 'utf8'), { merge: true })

/** Environment of a service, as strings. */
export const environmentOf = ({ environment = {} }: ComposeService): Record<string, string> =>
  Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, String(value)]))
