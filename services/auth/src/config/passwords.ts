import { baseUrl, boolean, integer, parsed, type Values, type Variables } from '@services/common/config/variables'
import { parseRequiredCharacters } from '../core/passwords/password-rules.ts'

export const passwordVariables = {
  PASSWORD_MIN_LENGTH: integer('Minimum length of a password, in bytes.', { default: '6', min: 1, max: 1024 }),
  PASSWORD_REQUIRED_CHARACTERS: parsed(
    'string',
    'Sets of characters, separated by `:`; a password needs one of each. `\\:` is a colon.',
    { default: '' },
    parseRequiredCharacters,
  ),
  PASSWORD_REFUSE_GUESSABLE: boolean(
    'Refuse the 10,000 most used passwords, and words from the address and the site.',
    { default: 'true' },
  ),
  PASSWORD_HIBP_ENABLED: boolean('Refuse new passwords known from leaks; the look-up sends five digits of the hash.', {
    default: 'false',
  }),
  PASSWORD_HIBP_URL: baseUrl('Base address of the list of leaked passwords; `/range/{prefix}` is appended.', {
    default: 'https://api.pwnedpasswords.com',
  }),
  PASSWORD_HIBP_FAIL_CLOSED: boolean('Refuse new passwords while that list is unavailable.', { default: 'false' }),
  PASSWORD_HASH_MEMORY_KIB: integer('argon2id memory.', { default: '19456', min: 8, max: 4_194_304 }),
  PASSWORD_HASH_PASSES: integer('argon2id passes.', { default: '2', min: 2, max: 100 }),
  PASSWORD_HASH_LANES: integer('argon2id lanes.', { default: '1', min: 1, max: 64 }),
  SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION: boolean(
    'A new password requires a nonce from /reauthenticate; any other change of sign-in methods or factors requires a nonce or a recent sign-in.',
    { default: 'false' },
  ),
  SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD: boolean(
    'A new password, e-mail address or number requires the current password; any other change of sign-in methods or factors requires it or a recent sign-in.',
    { default: 'false' },
  ),
} satisfies Variables

export const passwordSettings = (values: Values<typeof passwordVariables>) => ({
  minLength: values.PASSWORD_MIN_LENGTH,
  requiredCharacters: values.PASSWORD_REQUIRED_CHARACTERS,
  refusesGuessable: values.PASSWORD_REFUSE_GUESSABLE,
  requireCurrent: values.SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD,
  requireReauthentication: values.SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION,
  leaks: {
    enabled: values.PASSWORD_HIBP_ENABLED,
    url: values.PASSWORD_HIBP_URL,
    failClosed: values.PASSWORD_HIBP_FAIL_CLOSED,
  },
  hashing: {
    memoryKib: values.PASSWORD_HASH_MEMORY_KIB,
    passes: values.PASSWORD_HASH_PASSES,
    lanes: values.PASSWORD_HASH_LANES,
  },
})
