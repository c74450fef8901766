// Clients without an administrator: by dynamic registration (RFC 7591), and by documents at their own address.
import { boolean, integer, parsed, type Values, type Variables } from '@services/common/config/variables'

/** RFC 6750 has no limit; a shorter token could be guessed. */
const SHORTEST_TOKEN = 32

export const clientRegistrationVariables = {
  OAUTH_SERVER_ALLOW_DYNAMIC_REGISTRATION: boolean('Applications may register themselves (RFC 7591).', {
    default: 'false',
  }),
  OAUTH_SERVER_REGISTRATION_TOKENS: parsed(
    'list',
    'Initial access tokens of at least 32 characters, one of which a registration must have; unset: none is needed.',
    { default: '', secret: true },
    parseTokens,
  ),
  OAUTH_SERVER_CLIENT_METADATA_DOCUMENTS: boolean(
    'A client may be the https address of its own metadata document, which is fetched when it is used.',
    { default: 'false' },
  ),
  OAUTH_SERVER_MAX_DYNAMIC_CLIENTS: integer(
    'Clients that registered themselves, and as many of metadata documents. Beyond it, new ones replace those that got no tokens within an hour.',
    { default: '1000', min: 1, max: 100_000 },
  ),
} satisfies Variables

export const clientRegistrationSettings = (values: Values<typeof clientRegistrationVariables>) => ({
  dynamicRegistration: values.OAUTH_SERVER_ALLOW_DYNAMIC_REGISTRATION,
  registrationTokens: values.OAUTH_SERVER_REGISTRATION_TOKENS,
  metadataDocuments: values.OAUTH_SERVER_CLIENT_METADATA_DOCUMENTS,
  maxDynamicClients: values.OAUTH_SERVER_MAX_DYNAMIC_CLIENTS,
})

function parseTokens(value: string): readonly string[] {
  const tokens = value
    .split(',')
    .map((token) => token.trim())
    .filter(Boolean)
  if (tokens.every((token) => token.length >= SHORTEST_TOKEN)) return tokens
  throw new Error(`must list tokens of at least ${SHORTEST_TOKEN} characters`)
}
