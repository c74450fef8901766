import { textFault } from './redirect-uris.ts'

/** Describes what is wrong with a resource indicator (RFC 8707, section 2); undefined for a valid one. */
export function resourceFault(resource: string): string | undefined {
  const fault = textFault(resource)
  if (fault) return fault
  if (!/^[a-z][a-z0-9+.-]*:/i.test(resource) || !URL.canParse(resource)) return 'must be an absolute URI'
  return resource.includes('?') ? 'must not have a query' : undefined
}
