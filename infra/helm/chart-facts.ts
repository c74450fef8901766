import type { Variables } from '../../packages/common/src/config.ts'

/** Facts about the service that a chart installs. */
export interface ChartFacts {
  name: 'auth' | 'media'
  /** Prefix of its variables, such as `AUTH_`. */
  prefix: string
  variables: Variables
  /** Variables, without prefix, that other values of the chart set. */
  decided: readonly string[]
  /** Patterns of names that the operator invents, for plain variables and secrets. */
  madeUp?: { plain: string; secret: string }
}
