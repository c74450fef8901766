import type { Variables } from '../../packages/common/src/config.ts'

/** What a chart knows of the service it installs. */
export interface ChartFacts {
  name: 'auth' | 'media'
  /** Of variables, as in `AUTH_`. */
  prefix: string
  variables: Variables
  /** Without prefix; what other values decide, so that nobody says it twice. */
  decided: readonly string[]
  /** Patterns of names that the operator makes up; the first of plain ones, the second of secrets. */
  madeUp?: { plain: string; secret: string }
}
