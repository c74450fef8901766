import ipaddr from 'ipaddr.js'

/** Parses a comma-separated list of networks such as `10.0.0.0/8`. */
export function parseCidrs(value: string): string[] {
  const cidrs = value
    .split(',')
    .map((cidr) => cidr.trim())
    .filter(Boolean)
  if (!cidrs.every((cidr) => ipaddr.isValidCIDR(cidr))) throw new Error('must be a comma-separated list of CIDRs')
  return cidrs
}
