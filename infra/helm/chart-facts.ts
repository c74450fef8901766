import type { Variables } from '../../packages/common/src/config/variables.ts'

export interface ChartFacts {
  name: 'auth' | 'media'
  prefix: string
  variables: Variables
  /** Variables, without prefix, that other values of the chart set. */
  decided: readonly string[]
  /** Patterns of names that the operator invents, for plain variables and secrets. */
  madeUp?: { plain: string; secret: string }
}
