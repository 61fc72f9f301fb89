/* Runs requests on a SavedModel through TensorFlow's C interface: what a server does, and no Python.

       without_python FOLDER LIBRARY WORD...

   FOLDER is a version of a model; LIBRARY has the operations of tensorflow-text. The words make requests, which one
   session answers in turn, for the lines of standard input:

       TENSOR=lines     feeds all lines, string [B]; "line" feeds the first one, [], and "matrix" all of them, [1,B]
       TENSOR=int:4     feeds a number for each line, int32 [B]; "float:0.6" float32, "string:I love" a string
       TENSOR           fetches a tensor
       run              runs the request

   Prints the rows of a result one after another: every value of every tensor that was fetched, on a line of its own. An
   error is a line on standard error; the next request is run all the same. The exit status is TensorFlow's code of the
   last error, 3 for INVALID_ARGUMENT. */

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/tf_tstring.h"

enum { MOST_TENSORS = 16, MOST_LINES = 1000 };

typedef struct {
    int inputs, outputs;
    TF_Output fed[MOST_TENSORS], fetched[MOST_TENSORS];
    TF_Tensor *values[MOST_TENSORS];
} Request;

static char *lines[MOST_LINES];
static size_t lengths[MOST_LINES];
static int64_t line_count;

static void fail(const char *what, const char *message) {
    fprintf(stderr, "%s: %s\n", what, message);
    exit(100);
}

static void read_lines(void) {
    for (;; line_count++) {
        size_t capacity = 0;
        char *line = NULL;
        ssize_t length = getline(&line, &capacity, stdin);
        if (length < 0) {
            free(line);
            return;
        }
        if (line_count == MOST_LINES) fail("Standard input", "too many lines");
        if (line[length - 1] == '\n') length--;
        lines[line_count] = line;
        lengths[line_count] = (size_t)length;
    }
}

/* A string tensor of the lines, or of one text again and again. */
static TF_Tensor *strings(const int64_t *shape, int rank, const char *text) {
    int64_t count = 1;
    for (int i = 0; i < rank; i++) count *= shape[i];
    TF_Tensor *tensor = TF_AllocateTensor(TF_STRING, shape, rank, (size_t)count * sizeof(TF_TString));
    TF_TString *values = TF_TensorData(tensor);
    for (int64_t i = 0; i < count; i++) {
        TF_StringInit(&values[i]);
        TF_StringCopy(&values[i], text ? text : lines[i], text ? strlen(text) : lengths[i]);
    }
    return tensor;
}

static TF_Tensor *numbers(TF_DataType type, const char *number) {
    TF_Tensor *tensor = TF_AllocateTensor(type, &line_count, 1, (size_t)line_count * 4);
    void *values = TF_TensorData(tensor);
    for (int64_t i = 0; i < line_count; i++) {
        if (type == TF_INT32)
            ((int32_t *)values)[i] = (int32_t)strtol(number, NULL, 10);
        else
            ((float *)values)[i] = strtof(number, NULL);
    }
    return tensor;
}

static TF_Tensor *tensor_of(const char *value) {
    int64_t shape[] = {1, line_count};
    if (!strcmp(value, "lines")) return strings(shape + 1, 1, NULL);
    if (!strcmp(value, "line") && line_count) return strings(shape, 0, NULL);
    if (!strcmp(value, "matrix")) return strings(shape, 2, NULL);
    if (!strncmp(value, "string:", 7)) return strings(shape + 1, 1, value + 7);
    if (!strncmp(value, "int:", 4)) return numbers(TF_INT32, value + 4);
    if (!strncmp(value, "float:", 6)) return numbers(TF_FLOAT, value + 6);
    fail("No such value", value);
    return NULL;
}

/* The tensor `operation:number`. */
static TF_Output find(TF_Graph *graph, const char *name) {
    char operation[1000];
    snprintf(operation, sizeof operation, "%s", name);
    char *colon = strrchr(operation, ':');
    if (!colon) fail("No tensor", name);
    *colon = 0;
    TF_Output found = {TF_GraphOperationByName(graph, operation), atoi(colon + 1)};
    if (!found.oper) fail("No tensor", name);
    return found;
}

/* Feeds or fetches, as a word says. */
static void add(Request *request, TF_Graph *graph, char *word) {
    if (request->inputs == MOST_TENSORS || request->outputs == MOST_TENSORS) fail("Too many tensors", word);
    char *equals = strchr(word, '=');
    if (!equals) {
        request->fetched[request->outputs++] = find(graph, word);
        return;
    }
    *equals = 0;
    request->fed[request->inputs] = find(graph, word);
    request->values[request->inputs++] = tensor_of(equals + 1);
}

static void print_value(const TF_Tensor *tensor, int64_t i) {
    const void *values = TF_TensorData(tensor);
    const TF_TString *text;
    switch (TF_TensorType(tensor)) {
        case TF_STRING:
            text = (const TF_TString *)values + i;
            fwrite(TF_StringGetDataPointer(text), 1, TF_StringGetSize(text), stdout);
            break;
        case TF_FLOAT:
            printf("%.9g", ((const float *)values)[i]);
            break;
        case TF_INT32:
            printf("%d", ((const int32_t *)values)[i]);
            break;
        case TF_BOOL:
            printf("%d", ((const unsigned char *)values)[i]);
            break;
        default:
            fail("Output", "a type that this program cannot print");
    }
    putchar('\n');
}

static void print_rows(TF_Tensor *const *results, int count) {
    int64_t rows = count ? TF_Dim(results[0], 0) : 0;
    for (int64_t row = 0; row < rows; row++) {
        for (int output = 0; output < count; output++) {
            int64_t size = TF_TensorElementCount(results[output]) / rows;
            for (int64_t i = row * size; i < (row + 1) * size; i++) print_value(results[output], i);
        }
    }
}

static int run(TF_Session *session, Request *request, int number) {
    TF_Status *status = TF_NewStatus();
    TF_Tensor *results[MOST_TENSORS] = {NULL};
    TF_SessionRun(session, NULL, request->fed, request->values, request->inputs, request->fetched, results,
                  request->outputs, NULL, 0, NULL, status);
    int code = TF_GetCode(status);
    if (code == TF_OK) {
        print_rows(results, request->outputs);
    } else {
        char *message = strdup(TF_Message(status));
        for (char *c = message; *c; c++) {
            if (*c == '\n') *c = ' ';
        }
        fprintf(stderr, "request %d: code %d: %s\n", number, code, message);
        free(message);
    }
    for (int i = 0; i < request->inputs; i++) TF_DeleteTensor(request->values[i]);
    for (int i = 0; i < request->outputs; i++) {
        if (results[i]) TF_DeleteTensor(results[i]);
    }
    request->inputs = request->outputs = 0;
    TF_DeleteStatus(status);
    return code;
}

/* An operation that calls back into Python would need its library. */
static void refuse_python(void) {
    char line[5000];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        if (strstr(line, "libpython")) fail("Python is in this process", line);
    }
    if (maps) fclose(maps);
}

int main(int count, char **words) {
    if (count < 3) fail("Usage", "without_python FOLDER LIBRARY WORD...");
    const char *tags[] = {"serve"};
    TF_Status *status = TF_NewStatus();
    TF_LoadLibrary(words[2], status);
    if (TF_GetCode(status) != TF_OK) fail(words[2], TF_Message(status));
    TF_Graph *graph = TF_NewGraph();
    TF_SessionOptions *options = TF_NewSessionOptions();
    TF_Session *session = TF_LoadSessionFromSavedModel(options, NULL, words[1], tags, 1, graph, NULL, status);
    if (TF_GetCode(status) != TF_OK) fail(words[1], TF_Message(status));
    read_lines();
    Request request = {0};
    int code = 0, number = 0;
    for (int i = 3; i < count; i++) {
        if (strcmp(words[i], "run")) {
            add(&request, graph, words[i]);
        } else {
            int now = run(session, &request, number++);
            if (now != TF_OK) code = now;
        }
    }
    refuse_python();
    TF_DeleteSession(session, status);
    TF_DeleteSessionOptions(options);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(status);
    return code;
}
