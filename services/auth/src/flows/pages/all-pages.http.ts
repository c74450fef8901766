// The hosted pages (HOSTED_PAGES_ENABLED): sign-in and all around it, below /ui. Each is a file here, and works without
// scripts. The rule: a page asks this service's API and writes nothing itself (http/hosted/call-api.ts). How to add
// one: http/hosted/answer-pages.ts; its words: words/pages; tests: here.
import type { FastifyInstance } from 'fastify'
import type { Deps } from '../../deps.ts'
import { answerPages, type Page, type PageAnswers } from '../../http/hosted/answer-pages.ts'
import { accountPages } from './account/account-pages.ts'
import { arrivalPage } from './arrive.ts'
import { codePage } from './code.ts'
import { confirmPage } from './confirm.ts'
import { factorPage } from './factor.ts'
import { newPasswordPage } from './new-password.ts'
import { consentPage } from './oauth/consent.ts'
import { devicePage } from './oauth/device.ts'
import { logoutPage } from './oauth/logout.ts'
import { passkeyPage } from './passkey.ts'
import { providerPage } from './provider.ts'
import { recoverPage } from './recover.ts'
import { signInPage } from './sign-in.ts'
import { signOutPage } from './sign-out.ts'
import { signUpPage } from './sign-up.ts'

const signIn = [signInPage, codePage, factorPage, providerPage, arrivalPage, signOutPage]
const signUp = [signUpPage, recoverPage, newPasswordPage, confirmPage, passkeyPage]

/** Answers to applications that sign in with this service, where OAUTH_SERVER_ENABLED. */
const oauthPages = [consentPage, devicePage, logoutPage]

export const allPages: readonly Page[] = [...signIn, ...signUp, ...accountPages, ...oauthPages]

export const answerAllPages = (app: FastifyInstance, deps: Deps): PageAnswers => answerPages(app, deps, allPages)
