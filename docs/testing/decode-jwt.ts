const part = (token: string, index: number) =>
  JSON.parse(Buffer.from(token.split('.')[index] ?? '', 'base64url').toString()) as Record<string, unknown>

/** What a token says, whoever signed it. */
export const decodeJwt = (token: string) => part(token, 1)

/** Which key it says to be signed with. */
export const keyIdOf = (token: string) => part(token, 0).kid
