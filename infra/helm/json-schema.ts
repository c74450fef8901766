// Builders of JSON schemas of values.

export type Schema = Record<string, unknown>

/** Object with exactly these members. */
export const object = (properties: Record<string, Schema>, more: Schema = {}): Schema => ({
  type: 'object',
  additionalProperties: false,
  properties,
  ...more,
})

export const list = (items: Schema): Schema => ({ type: 'array', items })
export const oneOf = (...values: unknown[]): Schema => ({ enum: values })
export const matching = (pattern: string): Schema => ({ type: 'string', pattern })
export const ref = (name: string): Schema => ({ $ref: `#/definitions/${name}` })
export const orNull = (type: string): Schema => ({ type: [type, 'null'] })
/** Object whose members only Kubernetes knows. */
export const free: Schema = { type: 'object' }
export const map = (values: Schema): Schema => ({ type: 'object', additionalProperties: values })
export const text: Schema = { type: 'string' }
export const boolean: Schema = { type: 'boolean' }
export const count: Schema = { type: 'integer', minimum: 0 }
export const atLeastOne: Schema = { type: 'integer', minimum: 1 }
