export const isBanned = ({ banned_until: until }: { banned_until: Date | null }, now: Date): boolean =>
  until !== null && until > now
